SELECT U&'\0061', age FROM patients
