CLUSTER patients
