SELECT version(), current_setting('server_version_num'), 'patients'
