-- weir_slots_restored, which this step made, is in restoring.sql.

SELECT 1;
