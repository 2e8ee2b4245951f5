TABLE patients UNION ALL TABLE patients
