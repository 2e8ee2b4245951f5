SELECT 5x FROM patients
