SELECT cmin, cmax FROM patients
