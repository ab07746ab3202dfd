#ifndef PARASOL_BASE_SET_DEFAULT_H_
#define PARASOL_BASE_SET_DEFAULT_H_

// Sets `message.field` to `value`, unless it is set.
#define PARASOL_SET_DEFAULT(message, field, value) \
  if (!(message).has_##field()) (message).set_##field(value)

#endif  // PARASOL_BASE_SET_DEFAULT_H_
