//! The flags every operator has: kube-controller-manager's names, defaults and help, read in Go's form of values.
//!
//! Left out: `--authentication-kubeconfig` and `--authorization-kubeconfig` (the operator's own client asks the reviews),
//! `--cert-dir` (a self-signed certificate stays in memory), client certificates, `--config`, and feature gates.
//! Unlike upstream `--kube-api-qps` is 0 unless set, which is no limit: the apiserver's priority and fairness protects it
//! already, and a limit on this side only makes a queue nobody sees.

mod gates;
mod go;
mod neighbour;

use std::ffi::OsString;
use std::io::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{ArgAction, ArgMatches, Args, Command, FromArgMatches};

use crate::process::telemetry::{DEFAULT_VERBOSITY, LogFormat};
pub use crate::transport::identity::{KUBERNETES_VERSION, VERSION, version};
pub use gates::read_gates;
pub use go::{GoDuration, GoValueError, parse_bool};

/// client-go's: an attempt may start this much of a retry period later, and must still be before the renew deadline.
pub const JITTER_FACTOR: f64 = 1.2;

/// The flags of one operator: `Own` are those that only it has, and its doc comment is the first line of `--help`.
#[derive(Clone, Debug)]
pub struct Flags<Own> {
    /// Upstream's of this controller.
    pub own: Own,
    /// Those every operator has.
    pub shared: SharedFlags,
}

/// The flags every operator has.
#[derive(Clone, Debug, clap::Args)]
pub struct SharedFlags {
    /// Path to kubeconfig file with authorization and master location information (the master location can be
    /// overridden by the master flag). If neither is set, the pod's ServiceAccount is used.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "PATH", value_parser = path())]
    kubeconfig: PathBuf,
    /// The address of the Kubernetes API server (overrides any value in kubeconfig).
    #[arg(long, default_value = "", hide_default_value = true, value_name = "URL")]
    master: String,
    /// QPS to use while talking with kubernetes apiserver; 0 or less disables the limit.
    #[arg(long, default_value_t = 0.0, value_name = "NUMBER")]
    pub kube_api_qps: f32,
    /// Burst to use while talking with kubernetes apiserver, if --kube-api-qps sets a limit.
    #[arg(long, default_value_t = 30, value_name = "NUMBER")]
    pub kube_api_burst: u32,
    /// "operate" or "shadow". A shadow decides everything, writes nothing, takes no part in leader election, and lists
    /// the writes that it would make at /debug/shadow.
    #[arg(long, default_value = "operate", value_name = "MODE")]
    pub mode: Mode,
    /// Time to wait for the controllers to shut down before terminating the executable.
    #[arg(long, default_value = "10s", value_name = "DURATION")]
    pub controller_shutdown_timeout: GoDuration,
    #[arg(long, action = ArgAction::Version, help = "Print version information and quit")]
    version: Option<bool>,

    /// Leader election.
    #[command(flatten)]
    pub leader: LeaderFlags,
    /// Health, metrics and debugging over HTTPS.
    #[command(flatten)]
    pub serving: ServingFlags,
    /// Logs and traces.
    #[command(flatten)]
    pub logging: LoggingFlags,
}

/// `--mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// Reconcile while leading.
    #[default]
    Operate,
    /// Decide everything and write nothing.
    Shadow,
}

/// `--leader-elect` and what belongs to it.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Leader election")]
pub struct LeaderFlags {
    /// Start a leader election client and gain leadership before executing the main loop. Enable this when running
    /// replicated components for high availability.
    #[arg(long, action = ArgAction::Set, default_value = "true", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, value_parser = parse_bool, value_name = "BOOL")]
    pub leader_elect: bool,
    /// The duration that non-leader candidates will wait after observing a leadership renewal until attempting to
    /// acquire leadership of a led but unrenewed leader slot. This is effectively the maximum duration that a leader
    /// can be stopped before it is replaced by another candidate.
    #[arg(long, default_value = "15s", value_name = "DURATION")]
    pub leader_elect_lease_duration: GoDuration,
    /// The interval between attempts by the acting master to renew a leadership slot before it stops leading. This must
    /// be less than the lease duration.
    #[arg(long, default_value = "10s", value_name = "DURATION")]
    pub leader_elect_renew_deadline: GoDuration,
    /// The duration the clients should wait between attempting acquisition and renewal of a leadership.
    #[arg(long, default_value = "2s", value_name = "DURATION")]
    pub leader_elect_retry_period: GoDuration,
    /// The type of resource object that is used for locking during leader election. Supported options are 'leases'.
    #[arg(long, default_value = "leases", value_name = "KIND")]
    pub leader_elect_resource_lock: String,
    /// The name of resource object that is used for locking during leader election.
    #[arg(long, default_value = "", value_name = "NAME")]
    pub leader_elect_resource_name: String,
    /// The namespace of resource object that is used for locking during leader election.
    #[arg(long, default_value = "kube-system", value_name = "NAMESPACE")]
    pub leader_elect_resource_namespace: String,
}

/// `--secure-port` and what belongs to it.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Secure serving")]
pub struct ServingFlags {
    /// The IP address on which to listen for the --secure-port port. If an unspecified address (0.0.0.0 or ::), all
    /// interfaces and IP address families will be used.
    #[arg(long, default_value = "0.0.0.0", value_name = "IP")]
    pub bind_address: IpAddr,
    /// The port on which to serve HTTPS with authentication and authorization. If 0, don't serve HTTPS at all.
    #[arg(long, default_value_t = 10257, value_name = "PORT")]
    pub secure_port: u16,
    /// File containing the x509 Certificate for HTTPS (CA cert, if any, concatenated after server cert). If this and
    /// --tls-private-key-file are not given, a self-signed certificate is generated. Reloaded when it changes.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "PATH", value_parser = path())]
    tls_cert_file: PathBuf,
    /// File containing the x509 private key matching --tls-cert-file.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "PATH", value_parser = path())]
    tls_private_key_file: PathBuf,
    /// A list of HTTP paths to skip during authorization, i.e. these are authorized without contacting the 'core'
    /// kubernetes server. A path may end in '*'.
    #[arg(long, default_value = "/healthz,/readyz,/livez", value_delimiter = ',', value_name = "PATHS")]
    pub authorization_always_allow_paths: Vec<String>,
}

const OTLP_ENDPOINT_HELP: &str = "Address of an OpenTelemetry collector that accepts OTLP over HTTP, such as \
    http://127.0.0.1:4318. Defaults to OTEL_EXPORTER_OTLP_ENDPOINT; if neither is set, no traces are sent";

/// `--v`, `--logging-format` and where traces go.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Logs and traces")]
pub struct LoggingFlags {
    /// Number for the log level verbosity: 2 adds decisions, 6 everything that an operator does, 8 the transport.
    #[arg(short, long, default_value_t = DEFAULT_VERBOSITY, value_name = "LEVEL")]
    pub v: u8,
    /// Sets the log format. Permitted formats: "json", "text".
    #[arg(long, default_value = "text", value_name = "FORMAT")]
    pub logging_format: LogFormat,
    #[arg(long, default_value = "", hide_default_value = true, value_name = "URL", help = OTLP_ENDPOINT_HELP)]
    otlp_endpoint: String,
}

/// A path that may be empty, as Go's flags may.
fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

fn given(path: &Path) -> Option<&Path> {
    Some(path).filter(|path| !path.as_os_str().is_empty())
}

impl SharedFlags {
    /// `--kubeconfig`, if given.
    pub fn kubeconfig(&self) -> Option<&Path> {
        given(&self.kubeconfig)
    }

    /// `--master`, if given.
    pub fn master(&self) -> Option<&str> {
        Some(self.master.as_str()).filter(|url| !url.is_empty())
    }

    /// Checks flags against each other and gives all contradictions, which no single flag can show.
    ///
    /// Upstream: `NewLeaderElector`, staging/src/k8s.io/client-go/tools/leaderelection/leaderelection.go;
    /// `ValidateLeaderElectionConfiguration`, staging/src/k8s.io/component-base/config/validation/validation.go;
    /// `SecureServingOptions.Validate`, staging/src/k8s.io/apiserver/pkg/server/options/serving.go.
    pub fn validate(&self) -> Result<(), Vec<String>> {
        let wrong: Vec<String> = self.leader.contradictions().chain(self.serving.contradictions()).collect();
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }
}

impl LeaderFlags {
    fn contradictions(&self) -> impl Iterator<Item = String> {
        let (lease, renew, retry) =
            (self.leader_elect_lease_duration, self.leader_elect_renew_deadline, self.leader_elect_retry_period);
        let lock = &self.leader_elect_resource_lock;
        [
            // A Lease counts whole seconds, and none would be expired at once.
            (lease.0 < Duration::from_secs(1), format!("--leader-elect-lease-duration {lease} must be at least 1s")),
            (renew.0.is_zero(), "--leader-elect-renew-deadline must be greater than zero".to_owned()),
            (retry.0.is_zero(), "--leader-elect-retry-period must be greater than zero".to_owned()),
            (
                lease <= renew,
                format!(
                    "--leader-elect-lease-duration {lease} must be greater than --leader-elect-renew-deadline {renew}"
                ),
            ),
            (
                renew.0.as_secs_f64() <= retry.0.as_secs_f64() * JITTER_FACTOR,
                format!(
                    "--leader-elect-renew-deadline {renew} must be greater than {JITTER_FACTOR} times \
                     --leader-elect-retry-period {retry}"
                ),
            ),
            (lock != "leases", format!("--leader-elect-resource-lock {lock:?} is not supported: it must be leases")),
            (self.leader_elect_resource_name.is_empty(), "--leader-elect-resource-name must not be empty".to_owned()),
            (
                self.leader_elect_resource_namespace.is_empty(),
                "--leader-elect-resource-namespace must not be empty".to_owned(),
            ),
        ]
        .into_iter()
        .filter(move |(holds, _)| *holds && self.leader_elect)
        .map(|(_, message)| message)
    }
}

impl ServingFlags {
    /// The certificate and the key file, if given.
    pub fn certificate(&self) -> Option<(&Path, &Path)> {
        given(&self.tls_cert_file).zip(given(&self.tls_private_key_file))
    }

    fn contradictions(&self) -> impl Iterator<Item = String> {
        let half = given(&self.tls_cert_file).is_some() != given(&self.tls_private_key_file).is_some();
        half.then(|| "--tls-cert-file and --tls-private-key-file must be given together".to_owned()).into_iter()
    }
}

impl LoggingFlags {
    /// `--otlp-endpoint`, or what OpenTelemetry's own variable says, if either is given.
    pub fn otlp_endpoint(&self) -> Option<String> {
        #[expect(clippy::disallowed_methods, reason = "OpenTelemetry names this variable; injectors of agents set it")]
        let from_environment = || std::env::var("OTEL_EXPORTER_OTLP_ENDPOINT").ok();
        let flag = Some(self.otlp_endpoint.clone()).filter(|url| !url.is_empty());
        flag.or_else(from_environment).filter(|url| !url.is_empty())
    }
}

/// The text to print instead of running: help, the version, or the errors in the flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The text for a person.
    pub text: String,
    /// Whether it was asked for.
    pub asked_for: bool,
}

impl Exit {
    /// Ends with what is wrong: a line of its own for each error.
    pub fn of_errors(errors: &[String]) -> Self {
        let lines: Vec<String> = errors.iter().map(|error| format!("error: {}", one_line(error))).collect();
        Self { text: lines.join("\n") + "\n", asked_for: false }
    }

    /// 0 for what was asked for, 1 for an error, as cobra's.
    pub fn code(&self) -> u8 {
        u8::from(!self.asked_for)
    }

    /// Prints it where it belongs, and gives the exit code.
    pub fn print(&self) -> ExitCode {
        // There is nobody left to read it if the terminal is gone.
        let _ = if self.asked_for {
            std::io::stdout().write_all(self.text.as_bytes())
        } else {
            std::io::stderr().write_all(self.text.as_bytes())
        };
        ExitCode::from(self.code())
    }
}

/// Reads a number of syncs that may run at a time: at least one.
pub fn at_least_one(text: &str) -> Result<usize, String> {
    let number: i32 = text.parse().map_err(|error| format!("{error}"))?;
    let too_few = || format!("must be greater than 0, but got {number}");
    usize::try_from(number).ok().filter(|number| *number > 0).ok_or_else(too_few)
}

/// Reads a number from one to `max`, for the flag of this name.
pub fn one_to(max: i32, flag: &str, text: &str) -> Result<usize, String> {
    let number: i32 = text.parse().map_err(|error| format!("{error}"))?;
    if number > max {
        return Err(format!("{flag} must not be more than {max}, but got {number}"));
    }
    let too_few = || format!("{flag} must not be less than 1, but got {number}");
    usize::try_from(number).ok().filter(|number| *number > 0).ok_or_else(too_few)
}

/// The text on one line, as a log shows it best: nothing after a line's end is lost or taken for something else.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Reads the command line of the operator of this name; the first argument is the program's own name. Where the operator's
/// name follows, it has chosen this one in a program of several, and is no flag.
///
/// # Errors
/// When there is nothing to run: help or the version is asked for, a flag is unknown, or a value makes no sense.
pub fn parse<Own: Args>(operator: &'static str, args: impl IntoIterator<Item = OsString>) -> Result<Flags<Own>, Exit> {
    let mut args: Vec<OsString> = args.into_iter().collect();
    if args.get(1).is_some_and(|chosen| chosen == operator) {
        args.remove(1);
    }
    let mut command = command::<Own>(operator);
    let matches = matches(&mut command, &args)?;
    read(&matches)
}

/// The command of the process of this name, which is its Lease's name too unless a flag says another.
pub fn command<Own: Args>(name: &'static str) -> Command {
    let own = Own::augment_args(Command::new(name));
    let about = own.get_about().cloned().unwrap_or_default();
    SharedFlags::augment_args(own)
        .about(about)
        .bin_name(name)
        .version(version())
        .disable_version_flag(true)
        .mut_arg("leader_elect_resource_name", |arg| arg.default_value(name))
        // Of a repeated flag the last value counts; a list grows, as in Go.
        .mut_args(|arg| {
            let is_single = matches!(arg.get_action(), ArgAction::Set);
            if is_single { arg.clone().overrides_with(arg.get_id()) } else { arg }
        })
        // A number below zero is a value that may be wrong, and no flag that nobody knows.
        .mut_args(|arg| if arg.get_action().takes_values() { arg.allow_negative_numbers(true) } else { arg })
}

/// The values of the flags in these arguments, the first of which is the program's own name.
///
/// # Errors
/// As [`parse`] has them.
pub fn matches(command: &mut Command, args: &[OsString]) -> Result<ArgMatches, Exit> {
    command.try_get_matches_from_mut(args).map_err(|error| {
        let written: Vec<String> = args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
        exit(&error, neighbour::of(&error, command, &written))
    })
}

/// The flags that these values make.
///
/// # Errors
/// When a value makes no sense, by itself or beside another.
pub fn read<Own: Args>(matches: &ArgMatches) -> Result<Flags<Own>, Exit> {
    let invalid = |error: clap::Error| exit(&error, None);
    let own = Own::from_arg_matches(matches).map_err(invalid)?;
    let shared = SharedFlags::from_arg_matches(matches).map_err(invalid)?;
    shared.validate().map_err(|wrong| Exit::of_errors(&wrong))?;
    Ok(Flags { own, shared })
}

/// Help and the version as they are; of an error what is wrong, without the usage that every error has in common.
fn exit(error: &clap::Error, meant: Option<String>) -> Exit {
    let text = error.render().to_string();
    if !error.use_stderr() {
        return Exit { text, asked_for: true };
    }
    let wrong = text.split("\n\n").next().unwrap_or_default();
    let meant = meant.map(|flag| format!(", did you mean --{flag}?")).unwrap_or_default();
    Exit::of_errors(&[format!("{}{meant} (see --help)", wrong.trim_start_matches("error: "))])
}

#[cfg(test)]
mod tests;
