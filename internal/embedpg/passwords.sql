-- Puts new passwords in force when their files were lost.
ALTER ROLE posthorn PASSWORD ${role_password}
ALTER ROLE postgres PASSWORD ${super_password}
