#include "api/batching.h"
#include "api/zeroplan.h"
