#pragma once
// What of real files an importer must get right: one small model per row, and what must hold of it.
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "base/temporary_folder.h"
#include "graph/onnx/importer.h"
#include "tests/onnx/write_bytes.h"

namespace zeroplan {

struct ImporterRow {
  const char* topic;
  std::function<std::string(const TemporaryFolder&)> save;  // returns the model's path; its one input is x[N,2], given as {{1, 2}, {3, 4}}
  std::string error = {};                                   // what the import says; empty: it accepts the model
  std::vector<std::string> trained = {};                    // names of the trained parameters
  double loss = NAN;                                        // by hand
  std::vector<std::string> report = {};                     // parts of lines
  std::function<void(ImportOptions&)> options = {};         // besides two samples
};

// By subject, in tests/onnx/importer_rows_*.cc.
std::vector<ImporterRow> file_rows();       // versions, external data, types, sizes
std::vector<ImporterRow> parameter_rows();  // what is a weight, which are one
std::vector<ImporterRow> operator_rows();   // operators, functions, control flow, shapes

}  // namespace zeroplan
