SELECT age INTO t FROM patients
