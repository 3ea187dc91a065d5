//! The command line of the one process, which is kube-controller-manager's v1.36.
//!
//! A controller's flag goes to each running operator that declares it to clap; no table repeats the operators' flags.
//! Flags of kube-controller-manager without effect here are accepted, and a note gives the reason.
//! Left out: checking the values of operators' flags. Some name files, so each operator checks its own.
//!
//! Upstream: `NewControllerManagerCommand`, `cmd/kube-controller-manager/app/controllermanager.go`.

mod accepted;
mod controllers;
mod gates;

use std::ffi::OsString;

use clap::builder::OsStringValueParser;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use shared::process::flags::{self, Exit, Flags, parse_bool};
use shared::process::run::several::{Several, Start};

use crate::Operator;
use controllers::{Chosen, Given};
use gates::Gates;

/// kube-controller-manager's Lease.
const LEASE: &str = "kube-controller-manager";
const PROGRAM: &str = "operators";
/// The one flag of operators whose value is translated.
const FEATURE_GATES: &str = "feature-gates";
/// The flag without which the controllers of clouds do not run.
const PROVIDER: &str = "cloud_provider_endpoint";
/// The flag by which one of them runs without a cloud.
const POOLS: &str = "address_pools";

/// Runs kube-controller-manager's controllers in one process, with its flags
#[derive(Debug, clap::Args)]
struct ProcessFlags {
    /// A list of controllers to enable. '*' enables all on-by-default controllers, 'foo' enables the controller named
    /// 'foo', '-foo' disables the controller named 'foo'.
    #[arg(long, default_value = "*", value_delimiter = ',', allow_hyphen_values = true, value_name = "NAMES")]
    controllers: Vec<String>,
    /// If true, use individual service account credentials for each controller.
    #[arg(long, action = ArgAction::Set, default_value = "false", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, value_parser = parse_bool, value_name = "BOOL")]
    use_service_account_credentials: bool,
    /// Comma-separated list of component:key=value pairs that describe feature gates for alpha/experimental features.
    /// Options are:
    #[arg(long, value_name = "KEY=BOOL")]
    feature_gates: Vec<String>,
}

/// Reads the command line; the first argument is the program's own name.
///
/// # Errors
/// Help or the version is asked for, a flag or a value is invalid, or a controller is unknown.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>, operators: &'static [Operator]) -> Result<Several, Exit> {
    let args: Vec<OsString> = args.into_iter().map(with_dashes).collect();
    let matches = flags::matches(&mut command(operators), &args)?;
    let Flags { own, shared } = flags::read::<ProcessFlags>(&matches)?;
    let gates = Gates::read(&own.feature_gates).map_err(|wrong| Exit::of_errors(&wrong))?;
    let given = Given { has_provider: is_given(PROVIDER, &matches), has_pools: is_given(POOLS, &matches) };
    let Chosen { operators: chosen, notes: of_controllers } =
        controllers::choose(&own.controllers, &gates, given, operators).map_err(|wrong| Exit::of_errors(&wrong))?;
    let start = |operator: &Operator| Start { entry: operator.entry, args: args_of(operator, &matches, &gates) };
    let notes = of_controllers.into_iter().chain(gates.notes(operators)).chain(accepted::notes(&matches)).collect();
    Ok(Several {
        controllers: chosen.into_iter().map(start).collect(),
        shared,
        own_credentials: own.use_service_account_credentials,
        notes,
    })
}

/// Replaces underscores in a flag's name: upstream itself documents `--concurrent_rc_syncs`.
///
/// Upstream: `WordSepNormalizeFunc`, staging/src/k8s.io/component-base/cli/flag/flags.go.
fn with_dashes(arg: OsString) -> OsString {
    let Some(written) = arg.to_str().and_then(|arg| arg.strip_prefix("--")) else { return arg };
    let (name, value) = written.split_at(written.find('=').unwrap_or(written.len()));
    format!("--{}{value}", name.replace('_', "-")).into()
}

/// Every flag: the process's, the operators', and those without effect.
fn command(operators: &[Operator]) -> Command {
    let with = |arg: Arg, more: &str| {
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        arg.help(help + more)
    };
    let mut command = flags::command::<ProcessFlags>(LEASE)
        .name(PROGRAM)
        .bin_name(PROGRAM)
        .override_usage("operators [FLAGS]\n       operators OPERATOR [FLAGS]")
        .mut_arg("controllers", |arg| with(arg, &controllers::help()))
        .mut_arg("feature_gates", |arg| with(arg, &gates::help()));
    for operator in operators {
        for flag in flags_of(operator) {
            if !command.get_arguments().any(|known| known.get_id() == flag.get_id()) {
                command = command.arg(passed_on(flag).help_heading(operator.name));
            }
        }
    }
    command.args(accepted::args())
}

/// The flags that this operator declares itself.
fn flags_of(operator: &Operator) -> Vec<Arg> {
    (operator.flags)(Command::new(operator.name)).get_arguments().cloned().collect()
}

/// Whether the flag of this id has a value. An empty one is none, as for the operator itself.
fn is_given(id: &str, matches: &ArgMatches) -> bool {
    let values = matches.try_get_raw(id).ok().flatten();
    values.and_then(|mut values| values.next_back()).is_some_and(|value| !value.is_empty())
}

/// A flag whose values go to operators unchecked: each of them, because a list is appended to.
fn passed_on(flag: Arg) -> Arg {
    let is_switch = flag.is_require_equals_set();
    flag.value_parser(OsStringValueParser::new()).action(ArgAction::Append).allow_hyphen_values(!is_switch)
}

/// The arguments of this operator.
fn args_of(operator: &Operator, matches: &ArgMatches, gates: &Gates) -> Vec<OsString> {
    let mut args = Vec::new();
    for flag in flags_of(operator) {
        let Some(name) = flag.get_long() else { continue };
        let id = flag.get_id().as_str();
        if name == FEATURE_GATES {
            args.extend(gates.of(operator).map(OsString::from));
        } else if matches.value_source(id) == Some(ValueSource::CommandLine) {
            for value in matches.get_raw(id).into_iter().flatten() {
                let mut arg = OsString::from(format!("--{name}="));
                arg.push(value);
                args.push(arg);
            }
        }
    }
    args
}

#[cfg(test)]
mod tests;
