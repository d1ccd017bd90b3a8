-- What an operator has set for a namespace, as JSON text: an empty object is what holds unless
-- something else was set.
ALTER TABLE namespaces ADD COLUMN options text NOT NULL DEFAULT '{}';
