PREPARE q AS INSERT INTO names SELECT diagnosis, 1 FROM patients
