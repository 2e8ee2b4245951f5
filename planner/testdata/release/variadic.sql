SELECT concat_ws('-', VARIADIC ARRAY[zip, sex]) FROM patients
