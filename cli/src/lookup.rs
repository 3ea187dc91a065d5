//! The result of reading one thing.

/// An object that was found, does not exist, or could not be read.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Lookup<T> {
    Found(T),
    Absent,
    #[default]
    Unreadable,
}

impl<T> Lookup<T> {
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Found(value) => Some(value),
            Self::Absent | Self::Unreadable => None,
        }
    }
}
