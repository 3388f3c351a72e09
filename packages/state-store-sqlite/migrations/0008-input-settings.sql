-- What the turn of an input is asked with, for whoever runs it.

-- JSON; NULL: nothing, or the input is settled.
ALTER TABLE input ADD COLUMN settings TEXT;
