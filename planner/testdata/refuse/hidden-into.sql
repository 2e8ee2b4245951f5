SELECT name INTO TEMP t FROM patients
