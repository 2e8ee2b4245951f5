SELECT age AS from, zip AS group FROM patients
