SELECT zip FROM patients, drugs
