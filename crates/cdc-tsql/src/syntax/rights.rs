//! Logins, users, roles, and GRANT, DENY, REVOKE.

use sqlparser::tokenizer::Token;

use super::{
    Body, Permission, PermissionVerb, Right, Securable,
    reader::{Read, Reader},
    unsupported,
};

impl Reader {
    /// CREATE, ALTER or DROP of a login, a user or a role; the verb is taken already.
    pub(super) fn principal_statement(&mut self, verb: &str) -> Read<Body> {
        let what = self.peek_word().unwrap_or_default();
        self.at += 1;
        let right = match (verb, what.as_str()) {
            ("CREATE", "LOGIN") => self.create_login()?,
            ("ALTER", "LOGIN") => self.alter_login()?,
            ("DROP", "LOGIN") => Right::DropLogin { name: self.name()? },
            ("CREATE", "USER") => self.create_user()?,
            ("CREATE", "ROLE") => {
                let name = self.name()?;
                if self.take("AUTHORIZATION") {
                    self.name()?;
                }
                Right::CreateRole { name }
            }
            ("DROP", "USER") => {
                let if_exists = self.take_all(&["IF", "EXISTS"]);
                Right::DropUser { name: self.name()?, if_exists }
            }
            ("DROP", "ROLE") => {
                let if_exists = self.take_all(&["IF", "EXISTS"]);
                Right::DropRole { name: self.name()?, if_exists }
            }
            ("ALTER", "ROLE") => self.alter_role(false)?,
            ("ALTER", "SERVER") => {
                self.must("ROLE")?;
                self.alter_role(true)?
            }
            _ => return Err(self.error(unsupported(&format!("{verb} {what}")))),
        };
        Ok(Body::Right(right))
    }

    fn create_login(&mut self) -> Read<Right> {
        let name = self.name()?;
        if self.take("FROM") {
            return Err(self.error(unsupported("a login that is not SQL Server's own")));
        }
        self.must("WITH")?;
        self.must("PASSWORD")?;
        self.expect_token(&Token::Eq)?;
        let password = self.password()?;
        let mut database = None;
        while self.take_token(&Token::Comma) {
            let option = self.name()?.to_ascii_uppercase();
            self.expect_token(&Token::Eq)?;
            let value = self.name()?;
            match option.as_str() {
                "DEFAULT_DATABASE" => database = Some(value),
                // No policy is known here, and one language.
                "CHECK_POLICY" | "CHECK_EXPIRATION" | "DEFAULT_LANGUAGE" => {}
                _ => return Err(self.error(unsupported("this option of CREATE LOGIN"))),
            }
        }
        Ok(Right::CreateLogin { name, password, database })
    }

    fn password(&mut self) -> Read<String> {
        let Some(password) = self.string() else {
            return Err(self.error(unsupported("a password that is no string")));
        };
        if self.take("HASHED") {
            return Err(self.error(unsupported("PASSWORD HASHED")));
        }
        self.take("MUST_CHANGE");
        Ok(password)
    }

    fn alter_login(&mut self) -> Read<Right> {
        let name = self.name()?;
        if self.take("ENABLE") {
            return Ok(Right::AlterLogin { name, password: None, enabled: Some(true) });
        }
        if self.take("DISABLE") {
            return Ok(Right::AlterLogin { name, password: None, enabled: Some(false) });
        }
        self.must("WITH")?;
        self.must("PASSWORD")?;
        self.expect_token(&Token::Eq)?;
        let password = Some(self.password()?);
        if self.take("OLD_PASSWORD") {
            self.expect_token(&Token::Eq)?;
            self.password()?;
        }
        Ok(Right::AlterLogin { name, password, enabled: None })
    }

    fn create_user(&mut self) -> Read<Right> {
        let name = self.name()?;
        let mut login = Some(name.clone());
        if self.take("FOR") || self.take("FROM") {
            self.must("LOGIN")?;
            login = Some(self.name()?);
        } else if self.take_all(&["WITHOUT", "LOGIN"]) {
            login = None;
        }
        let mut schema = None;
        if self.take("WITH") {
            if self.take("PASSWORD") {
                return Err(self.error(unsupported("a contained user")));
            }
            self.must("DEFAULT_SCHEMA")?;
            self.expect_token(&Token::Eq)?;
            schema = Some(self.name()?);
        }
        Ok(Right::CreateUser { name, login, schema })
    }

    fn alter_role(&mut self, server: bool) -> Read<Right> {
        let role = self.name()?;
        let add = self.take("ADD");
        if !add {
            self.must("DROP")?;
        }
        self.must("MEMBER")?;
        Ok(Right::RoleMember { role, member: self.name()?, add, server })
    }

    pub(super) fn permission_statement(&mut self, verb: &str) -> Read<Body> {
        self.at += 1;
        let verb = match verb {
            "GRANT" => PermissionVerb::Grant,
            "DENY" => PermissionVerb::Deny,
            _ => {
                self.take_all(&["GRANT", "OPTION", "FOR"]);
                PermissionVerb::Revoke
            }
        };
        let rights = self.list(Self::right_words)?;
        let on = if self.take("ON") { self.securable()? } else { Securable::Nothing };
        if !self.take("TO") && (verb != PermissionVerb::Revoke || !self.take("FROM")) {
            return Err(self.unexpected());
        }
        let principals = self.list(Self::name)?;
        self.take_all(&["WITH", "GRANT", "OPTION"]);
        self.take("CASCADE");
        if self.take("AS") {
            self.name()?;
        }
        Ok(Body::Right(Right::Permission(Permission { verb, rights, on, principals })))
    }

    /// The words of a right: `VIEW DATABASE STATE`.
    fn right_words(&mut self) -> Read<String> {
        let mut words = Vec::new();
        loop {
            match self.peek_word() {
                Some(word) if !matches!(word.as_str(), "ON" | "TO" | "FROM") => {
                    self.at += 1;
                    words.push(word);
                }
                _ if words.is_empty() => return Err(self.unexpected()),
                _ => break,
            }
        }
        if self.peek() == Some(&Token::LParen) {
            return Err(self.error(unsupported("rights on columns")));
        }
        Ok(words.join(" "))
    }

    fn securable(&mut self) -> Read<Securable> {
        let class = self.peek_word().unwrap_or_default();
        if self.peek_at(1) != Some(&Token::DoubleColon) {
            let object = self.object()?;
            if self.peek() == Some(&Token::LParen) {
                return Err(self.error(unsupported("rights on columns")));
            }
            return Ok(Securable::Object(object));
        }
        self.at += 2;
        match class.as_str() {
            "OBJECT" => self.object().map(Securable::Object),
            "SCHEMA" => self.name().map(Securable::Schema),
            "DATABASE" => self.name().map(Securable::Database),
            _ => Err(self.error(unsupported("rights on this class of objects"))),
        }
    }
}
