SELECT age INTO TEMP t FROM patients
