SELECT table_name, view_definition FROM information_schema.views WHERE table_name = 'elderly'
