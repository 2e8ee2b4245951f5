PREPARE "as" AS SELECT zip FROM patients;
