# The CMake package: every library, the headers, and the ONNX library that they were built with.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(zeroplan_targets zp_base zp_ir zp_ops zp_text zp_onnx zp_plan zp_edit zp_passes zp_kernels zp_device zp_comm zp_data zp_exec zp_cuda zp_api)
if(ZEROPLAN_CUDA)
  list(APPEND zeroplan_targets zp_kernels_cuda)
endif()
install(TARGETS ${zeroplan_targets} EXPORT zeroplanTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT zeroplanTargets NAMESPACE zeroplan:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/zeroplan)
# A package of its own for those who want processes: find_package(zeroplan COMPONENTS mpi).
if(TARGET zp_mpi)
  install(TARGETS zp_mpi EXPORT zeroplanMpiTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT zeroplanMpiTargets NAMESPACE zeroplan:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/zeroplan)
endif()
foreach(folder base graph runtime passes kernels api)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} DESTINATION include/zeroplan FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
endforeach()
get_filename_component(onnx_prefix "${ONNX_DIR}/../../.." ABSOLUTE)
install(DIRECTORY ${onnx_prefix}/ DESTINATION ${CMAKE_INSTALL_LIBDIR}/zeroplan/onnx)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/zeroplanConfig.cmake.in ${PROJECT_BINARY_DIR}/zeroplanConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/zeroplan PATH_VARS CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/zeroplanConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/zeroplanConfig.cmake ${PROJECT_BINARY_DIR}/zeroplanConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/cmake/Finddnnl.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/zeroplan)
