-- The words of a policy's behaviour name its store, too.
ALTER TABLE weir_policy MODIFY on_store_error VARBINARY(255) NOT NULL;
