SELECT x.age FROM patients x JOIN encounters x ON x.id = x.patient_id
