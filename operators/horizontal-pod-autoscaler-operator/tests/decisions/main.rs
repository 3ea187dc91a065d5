//! Every decision as a row: builders in, the plan's words out.

mod behavior;
mod fixtures;
mod horizontal;
mod pods;
mod properties;
mod replica_calculator;
mod requests;
mod scaling;
