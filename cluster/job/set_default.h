#ifndef PARASOL_CLUSTER_JOB_SET_DEFAULT_H_
#define PARASOL_CLUSTER_JOB_SET_DEFAULT_H_

// Sets `message.field` to `value`, unless it is set.
#define SET_DEFAULT(message, field, value) \
  if (!(message).has_##field()) (message).set_##field(value)

#endif  // PARASOL_CLUSTER_JOB_SET_DEFAULT_H_
