SELECT FROM WHERE patients 'secret'
