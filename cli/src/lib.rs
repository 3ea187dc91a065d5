//! The kubectl plugin: `kubectl operators why deployment/web`, `kubectl operators status`, `kubectl operators preflight`.
//!
//! [`diagnose`] finds the [`cause`] in the [`evidence`] and returns a [`diagnosis`]: pure functions. [`read`] and
//! [`reach`] collect the evidence, [`survey`] and [`status`] describe the operators, [`trace`] joins their decisions,
//! [`preflight`] runs shadows, and [`run`] is the program. It changes nothing in the cluster.

pub mod cause;
mod command_line;
mod connect;
pub mod controllers;
pub mod diagnose;
pub mod diagnosis;
pub mod discovery;
pub mod evidence;
pub mod flags;
pub mod kinds;
pub mod lease;
pub mod lookup;
pub mod object;
pub mod output;
pub mod preflight;
pub mod reach;
pub mod read;
pub mod run;
pub mod runner;
pub mod status;
pub mod survey;
pub mod trace;
pub mod words;
