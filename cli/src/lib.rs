//! The kubectl plugin: `kubectl operators why deployment/web`, `kubectl operators status`, `kubectl operators preflight`.
//!
//! In reading order: [`evidence`] is all that was read, [`diagnose`] finds in it the [`cause`] to name first, and
//! [`diagnosis`] is the answer, all of them pure; [`read`] and [`reach`] get the evidence, [`status`] and [`survey`] the
//! table of operators, and [`run`] is the program. [`trace`] joins what operators remember, and [`preflight`] runs shadows.
//! Left out: changing anything.

pub mod cause;
pub mod controllers;
pub mod diagnose;
pub mod diagnosis;
pub mod discovery;
pub mod evidence;
pub mod flags;
pub mod kinds;
pub mod lease;
pub mod object;
pub mod preflight;
pub mod reach;
pub mod read;
pub mod run;
pub mod status;
pub mod survey;
pub mod trace;
pub mod words;
