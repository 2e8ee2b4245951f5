LISTEN patients
