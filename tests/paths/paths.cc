#include "tests/paths/paths.h"

namespace zeroplan {

const char* const kSourceFolder = ZEROPLAN_SOURCE_DIR;
const char* const kProgram = ZEROPLAN_BINARY;

}  // namespace zeroplan
