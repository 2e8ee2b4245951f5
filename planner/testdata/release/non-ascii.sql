SELECT 'Größe ✓', age FROM patients
