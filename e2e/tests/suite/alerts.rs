//! The alerts and the dashboards. Everything about them needs Prometheus, which takes minutes to build.

mod minutes;
