CREATE FUNCTION weir_slots_deactivate(p_name text) RETURNS boolean LANGUAGE plpgsql AS $f$
BEGIN
  PERFORM weir_slots_lock_config(p_name);
  UPDATE rate_limit_config SET active = false WHERE config_name = p_name AND active;
  RETURN FOUND;
END $f$;
