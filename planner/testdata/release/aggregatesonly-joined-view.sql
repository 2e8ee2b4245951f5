SELECT age, ward FROM on_duty
