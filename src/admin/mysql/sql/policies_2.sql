-- on_store_error also holds the name of the policy's store.
ALTER TABLE weir_policy MODIFY on_store_error VARBINARY(255) NOT NULL;
