#pragma once
#include <string>
#include <vector>

#include "runtime/plan/plan.h"

namespace zeroplan {

// A file of the command line and what it is to the user: "the model", "--metrics". An empty path is none.
struct NamedFile {
  std::string name, path;
  bool lines = false;  // written line by line: a pipe or a device may take them
};

// Before the work, throws Error naming the file where an output is an input under any name (links included), where two outputs are one
// file, where its folder does not exist, or where it is a folder or a device.
void check_outputs(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs);
// The model of a plan, with the external files of its parameters.
std::vector<NamedFile> model_files(const Plan& plan);
// NAME.npy of each file of a data folder; nothing where there is no such folder.
std::vector<NamedFile> data_files(const std::string& folder);

}  // namespace zeroplan
