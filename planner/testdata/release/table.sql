TABLE patients
