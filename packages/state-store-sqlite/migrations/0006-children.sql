-- Children: sessions that a tool call made, and the inputs that tell their parents of their ends.

-- The call that the session was made for; NULL: nobody's child. No reference: a child outlives its parent.
ALTER TABLE session ADD COLUMN parent_session_id TEXT;
ALTER TABLE session ADD COLUMN parent_turn_id TEXT;
ALTER TABLE session ADD COLUMN parent_call_id TEXT;
-- 1: its one end was told, or is nobody's business here.
ALTER TABLE session ADD COLUMN has_told_parent INTEGER NOT NULL DEFAULT 0;

-- A turn that ends looks for those of its children that have not begun.
CREATE INDEX session_by_parent ON session (parent_session_id, parent_turn_id) WHERE parent_session_id IS NOT NULL;

-- The child whose end the input tells of; NULL: somebody's message.
ALTER TABLE input ADD COLUMN child TEXT; -- JSON
