SELECT jsonb_build_array(VARIADIC ARRAY[p]) FROM patients p
