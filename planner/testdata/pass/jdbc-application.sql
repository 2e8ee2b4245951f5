SET application_name = 'patients browser'
