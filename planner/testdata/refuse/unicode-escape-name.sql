SELECT age AS U&"\0061" FROM patients
