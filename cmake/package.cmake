# The embeddable library: one archive of the layers that need only the standard library and
# threads, installed with its headers for find_package(weir).
include(CMakePackageConfigHelpers)

add_library(weir_embedded STATIC
            $<TARGET_OBJECTS:weir_base> $<TARGET_OBJECTS:weir_algorithm>
            $<TARGET_OBJECTS:weir_engine> $<TARGET_OBJECTS:weir_filter>)
add_library(weir::weir ALIAS weir_embedded)
set_target_properties(weir_embedded PROPERTIES OUTPUT_NAME weir EXPORT_NAME weir LINKER_LANGUAGE CXX)
target_compile_features(weir_embedded PUBLIC cxx_std_20)
target_link_libraries(weir_embedded PUBLIC Threads::Threads)
target_include_directories(weir_embedded PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                                $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
if(WEIR_SANITIZE)
  target_link_options(weir_embedded PUBLIC $<BUILD_INTERFACE:-fsanitize=${WEIR_SANITIZE}>)
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/weir)
install(TARGETS weir_embedded EXPORT weirTargets COMPONENT library
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/weir DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library
        FILES_MATCHING PATTERN "*.h" PATTERN "shared_limiter.h" EXCLUDE PATTERN "limiter.h" EXCLUDE)
install(EXPORT weirTargets NAMESPACE weir:: DESTINATION ${package_dir} COMPONENT library)
configure_package_config_file(cmake/weirConfig.cmake.in ${PROJECT_BINARY_DIR}/weirConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
# Before 1.0 a new minor version may change the API.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/weirConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/weirConfig.cmake ${PROJECT_BINARY_DIR}/weirConfigVersion.cmake
        DESTINATION ${package_dir} COMPONENT library)

# Shared limits and policies: find_package(weir COMPONENTS stores). One more archive, which needs the databases' clients.
if(NOT WEIR_STORES)
  return()
endif()
find_package(CURL REQUIRED)
find_package(fmt REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(PostgreSQL REQUIRED)
find_package(simdjson REQUIRED)
find_package(ZLIB REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(MARIADB REQUIRED QUIET IMPORTED_TARGET libmariadb)
pkg_check_modules(HIREDIS REQUIRED QUIET IMPORTED_TARGET hiredis)
set(parts telemetry drivers_digest drivers_redis drivers_postgres drivers_mysql policy config store_guard store_reserve store_sql store_redis store_wire store_remote
          store_postgres store_mysql store_lease store_memory store_route limiter limiter_permits admin_policies admin_shared admin_sql
          admin_postgres admin_mysql admin_redis library_backend library)
list(TRANSFORM parts REPLACE "(.+)" "$<TARGET_OBJECTS:weir_\\1>" OUTPUT_VARIABLE objects)
add_library(weir_stores STATIC ${objects})
add_library(weir::stores ALIAS weir_stores)
set_target_properties(weir_stores PROPERTIES EXPORT_NAME stores LINKER_LANGUAGE CXX)
target_link_libraries(weir_stores PUBLIC weir_embedded
                      PRIVATE OpenSSL::SSL OpenSSL::Crypto PostgreSQL::PostgreSQL PkgConfig::MARIADB
                              PkgConfig::HIREDIS fmt::fmt CURL::libcurl simdjson::simdjson yaml-cpp ZLIB::ZLIB)
install(TARGETS weir_stores EXPORT weirStoresTargets COMPONENT stores
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES include/weir/limiter.h include/weir/shared_limiter.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/weir COMPONENT stores)
install(EXPORT weirStoresTargets NAMESPACE weir:: DESTINATION ${package_dir} COMPONENT stores)
