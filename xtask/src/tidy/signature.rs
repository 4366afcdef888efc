//! A driver stays inside its adapter: no public signature elsewhere names it, and core does not
//! name it at all.

use std::collections::BTreeMap;

use syn::{
    Field, Fields, Generics, ImplItem, Item, ItemImpl, ItemTrait, ItemUse, Path, Signature,
    TraitItem, UseTree, Visibility,
    visit::{self, Visit},
};

use crate::{Finding, Tree, source::RustSource};

const RULE: &str = "drivers-stay-inside";
const CORE: &str = "crates/cdc-core";

/// Each driver with the package it belongs to.
const DRIVERS: [(&str, &str); 13] = [
    ("tiberius", "crates/cdc-mssql"),
    ("mssql_tds", "crates/cdc-mssql"),
    ("deltalake", "crates/cdc-delta"),
    ("deltalake_core", "crates/cdc-delta"),
    ("datafusion", "crates/cdc-delta"),
    ("delta_kernel", "crates/cdc-delta"),
    ("delta_kernel_default_engine", "crates/cdc-delta"),
    ("buoyant_kernel", "crates/cdc-delta"),
    ("buoyant_kernel_engine", "crates/cdc-delta"),
    ("ballista", "crates/cdc-delta"),
    ("tokio_postgres", "crates/cdc-postgres"),
    ("deadpool_postgres", "crates/cdc-postgres"),
    ("tokio_postgres_rustls", "crates/cdc-postgres"),
];

/// No public signature names a driver outside its adapter, and core names none anywhere.
#[must_use]
pub fn drivers_stay_inside(tree: &Tree) -> Vec<Finding> {
    tree.sources().iter().filter(|source| !source.is_test()).flat_map(look_at).collect()
}

fn look_at(source: &RustSource) -> Vec<Finding> {
    let mut imports = Imports::default();
    imports.visit_file(&source.items);
    let mut public =
        Public { imports: &imports, everything: source.package() == CORE, found: Vec::new() };
    if public.everything {
        public.visit_file(&source.items);
    } else {
        public.items(&source.items.items);
    }
    let imported =
        imports.drivers.iter().filter(|import| public.everything || import.public || import.glob);
    let mut found = public.found.clone();
    found.extend(imported.map(|import| (import.line, import.driver.clone())));
    found.sort();
    found.dedup();
    found
        .into_iter()
        .filter(|(line, driver)| {
            !source.is_test_line(*line) && owner(driver) != Some(source.package())
        })
        .map(|(line, driver)| {
            let remedy = if public.everything {
                format!("move what needs {driver} to its adapter; core knows no driver")
            } else {
                format!("use a type of core or your own; {driver} stays inside its adapter")
            };
            Finding::new(&source.path, line, RULE, remedy)
        })
        .collect()
}

fn owner(driver: &str) -> Option<&'static str> {
    DRIVERS.iter().find(|(name, _)| *name == driver).map(|(_, package)| *package)
}

/// A `use` of a driver.
struct Import {
    line: usize,
    driver: String,
    public: bool,
    /// A glob hides which names come from the driver, so no signature of the file can be judged.
    glob: bool,
}

/// What a file's `use` items bring in.
#[derive(Default)]
struct Imports {
    /// Local name → the driver it comes from.
    names: BTreeMap<String, String>,
    drivers: Vec<Import>,
}

impl Imports {
    fn take(&mut self, tree: &UseTree, root: Option<&str>, public: bool) {
        match tree {
            UseTree::Path(path) => {
                let name = path.ident.to_string();
                self.take(&path.tree, Some(root.unwrap_or(&name)), public);
            }
            UseTree::Name(name) => {
                let local = name.ident.to_string();
                let driver = root.unwrap_or(&local).to_owned();
                // `use driver::{self}` brings in the driver's own name, which paths show anyway.
                self.add(driver, &local, name.ident.span().start().line, public);
            }
            UseTree::Rename(rename) => {
                let original = rename.ident.to_string();
                let driver = root.unwrap_or(&original).to_owned();
                let line = rename.ident.span().start().line;
                self.add(driver, &rename.rename.to_string(), line, public);
            }
            UseTree::Glob(glob) => {
                if let Some(driver) = root.filter(|root| owner(root).is_some()) {
                    self.drivers.push(Import {
                        line: glob.star_token.spans[0].start().line,
                        driver: driver.to_owned(),
                        public,
                        glob: true,
                    });
                }
            }
            UseTree::Group(group) => {
                for inner in &group.items {
                    self.take(inner, root, public);
                }
            }
        }
    }

    fn add(&mut self, driver: String, local: &str, line: usize, public: bool) {
        if owner(&driver).is_some() {
            self.names.insert(local.to_owned(), driver.clone());
            self.drivers.push(Import { line, driver, public, glob: false });
        }
    }
}

impl<'ast> Visit<'ast> for Imports {
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.take(&item.tree, None, is_public(&item.vis));
    }
}

/// Collects drivers in what others can see of a file.
struct Public<'i> {
    imports: &'i Imports,
    /// Whether bodies and private items count too.
    everything: bool,
    found: Vec<(usize, String)>,
}

impl Public<'_> {
    fn items(&mut self, items: &[Item]) {
        for item in items {
            self.item(item);
        }
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Const(item) if is_public(&item.vis) => self.visit_type(&item.ty),
            Item::Static(item) if is_public(&item.vis) => self.visit_type(&item.ty),
            Item::Type(item) if is_public(&item.vis) => {
                self.generics(&item.generics);
                self.visit_type(&item.ty);
            }
            Item::Fn(item) if is_public(&item.vis) => self.signature(&item.sig),
            Item::Struct(item) if is_public(&item.vis) => {
                self.generics(&item.generics);
                self.fields(&item.fields, false);
            }
            Item::Enum(item) if is_public(&item.vis) => {
                self.generics(&item.generics);
                for variant in &item.variants {
                    self.fields(&variant.fields, true);
                }
            }
            Item::Union(item) if is_public(&item.vis) => {
                for field in &item.fields.named {
                    self.field(field, false);
                }
            }
            Item::Trait(item) if is_public(&item.vis) => self.port(item),
            Item::Impl(item) => self.implementation(item),
            Item::Mod(item) => {
                if let Some((_, items)) = &item.content {
                    self.items(items);
                }
            }
            _ => {}
        }
    }

    fn port(&mut self, item: &ItemTrait) {
        self.generics(&item.generics);
        for bound in &item.supertraits {
            self.visit_type_param_bound(bound);
        }
        for inner in &item.items {
            match inner {
                TraitItem::Fn(method) => self.signature(&method.sig),
                other => self.visit_trait_item(other),
            }
        }
    }

    fn implementation(&mut self, item: &ItemImpl) {
        let is_trait = item.trait_.is_some();
        if is_trait {
            self.generics(&item.generics);
            self.visit_type(&item.self_ty);
            self.implemented(item);
        }
        for inner in &item.items {
            match inner {
                ImplItem::Fn(method) if is_trait || is_public(&method.vis) => {
                    self.signature(&method.sig);
                }
                ImplItem::Const(constant) if is_trait || is_public(&constant.vis) => {
                    self.visit_type(&constant.ty);
                }
                ImplItem::Type(associated) => self.visit_type(&associated.ty),
                _ => {}
            }
        }
    }

    fn implemented(&mut self, item: &ItemImpl) {
        if let Some((path, _)) = &item.trait_ {
            self.visit_path(path);
        }
    }

    fn signature(&mut self, signature: &Signature) {
        self.visit_signature(signature);
    }

    fn generics(&mut self, generics: &Generics) {
        self.visit_generics(generics);
    }

    fn fields(&mut self, fields: &Fields, of_variant: bool) {
        for field in fields {
            self.field(field, of_variant);
        }
    }

    fn field(&mut self, field: &Field, of_variant: bool) {
        if of_variant || is_public(&field.vis) {
            self.visit_type(&field.ty);
        }
    }
}

impl<'ast> Visit<'ast> for Public<'_> {
    fn visit_path(&mut self, path: &'ast Path) {
        if let Some(first) = path.segments.first() {
            let name = first.ident.to_string();
            let driver = match self.imports.names.get(&name) {
                Some(driver) => Some(driver.clone()),
                None => owner(&name).is_some_and(|_| path.segments.len() > 1).then_some(name),
            };
            if let Some(driver) = driver {
                self.found.push((first.ident.span().start().line, driver));
            }
        }
        visit::visit_path(self, path);
    }
}

/// `pub` without a restriction.
fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}
