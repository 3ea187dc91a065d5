//! The alerts and the dashboard. Everything about them needs Prometheus, which takes minutes to build.

mod minutes;
