select character_set_name from INFORMATION_SCHEMA.character_sets where 'patients' is not null
