SET tailor.representation = 'value'
