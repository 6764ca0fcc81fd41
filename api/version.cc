#include "api/zeroplan.h"

namespace zeroplan {

const char* version() { return ZEROPLAN_VERSION; }

}  // namespace zeroplan
