//! Every key of the configuration changes the plan.
