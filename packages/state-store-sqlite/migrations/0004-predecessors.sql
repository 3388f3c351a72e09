-- Turns that did not end themselves.

-- JSON: which they were since the last that did, and who held them; oldest first. NULL: none.
ALTER TABLE lease ADD COLUMN predecessors TEXT;
