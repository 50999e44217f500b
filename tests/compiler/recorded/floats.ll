; ModuleID = 'tests/compiler/programs/floats.cu'
source_filename = "tests/compiler/programs/floats.cu"
target datalayout = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

%struct.__half = type { half }
%struct.__nv_bfloat16 = type { bfloat }

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(none)
define dso_local noundef range(i32 0, 128) i32 @_Z8comparedff(float noundef %a, float noundef %b) local_unnamed_addr #0 {
entry:
  %cmp = fcmp olt float %a, %b
  %conv = zext i1 %cmp to i32
  %cmp1 = fcmp ole float %a, %b
  %shl = select i1 %cmp1, i32 2, i32 0
  %or = or disjoint i32 %shl, %conv
  %cmp3 = fcmp oeq float %a, %b
  %shl5 = select i1 %cmp3, i32 4, i32 0
  %or6 = or disjoint i32 %or, %shl5
  %cmp7 = fcmp une float %a, %b
  %shl9 = select i1 %cmp7, i32 8, i32 0
  %or10 = or disjoint i32 %or6, %shl9
  %shl13 = select i1 %cmp, i32 0, i32 16
  %or14 = or disjoint i32 %or10, %shl13
  %cmp15 = fcmp ult float %a, %b
  %shl18 = select i1 %cmp15, i32 32, i32 0
  %or19 = or disjoint i32 %or14, %shl18
  %cmp20 = fcmp ogt float %a, %b
  %shl22 = select i1 %cmp20, i32 64, i32 0
  %or23 = or i32 %or19, %shl22
  ret i32 %or23
}

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(argmem: read)
define dso_local noundef range(i32 0, 65536) i32 @_Z7bits_of6__half(ptr nofree noundef readonly byval(%struct.__half) align 2 captures(none) %x) local_unnamed_addr #1 {
entry:
  %0 = load i16, ptr %x, align 2, !tbaa !7
  %conv = zext i16 %0 to i32
  ret i32 %conv
}

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(argmem: read)
define dso_local noundef range(i32 0, 65536) i32 @_Z7bits_of13__nv_bfloat16(ptr nofree noundef readonly byval(%struct.__nv_bfloat16) align 2 captures(none) %x) local_unnamed_addr #1 {
entry:
  %0 = load i16, ptr %x, align 2, !tbaa !7
  %conv = zext i16 %0 to i32
  ret i32 %conv
}

; Function Attrs: convergent mustprogress noinline norecurse nounwind memory(argmem: readwrite)
define dso_local ptx_kernel void @k(ptr nofree noundef readonly captures(none) %in, ptr nofree noundef writeonly captures(none) %out) local_unnamed_addr #2 {
entry:
  %0 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %idxprom = zext nneg i32 %0 to i64
  %arrayidx = getelementptr inbounds nuw [4 x i8], ptr %in, i64 %idxprom
  %1 = load i32, ptr %arrayidx, align 4, !tbaa !9
  %arrayidx3 = getelementptr inbounds nuw i8, ptr %arrayidx, i64 256
  %2 = load i32, ptr %arrayidx3, align 4, !tbaa !9
  %3 = bitcast i32 %1 to float
  %4 = bitcast i32 %2 to float
  %conv = sitofp i32 %1 to float
  %mul = fmul nnan float %conv, 1.000000e-03
  %conv6 = sitofp i32 %2 to float
  %mul7 = fmul nnan float %conv6, 2.500000e-01
  %mul9 = shl nuw nsw i32 %0, 4
  %idx.ext = zext nneg i32 %mul9 to i64
  %add.ptr = getelementptr inbounds nuw [4 x i8], ptr %out, i64 %idx.ext
  %cmp.i = fcmp olt float %3, %4
  %cmp1.i = fcmp ole float %3, %4
  %shl.i = select i1 %cmp1.i, i32 2, i32 0
  %cmp3.i = fcmp oeq float %3, %4
  %shl5.i = select i1 %cmp3.i, i32 4, i32 0
  %cmp7.i = fcmp une float %3, %4
  %shl9.i = select i1 %cmp7.i, i32 8, i32 0
  %shl13.i = select i1 %cmp.i, i32 0, i32 16
  %cmp15.i = fcmp ult float %3, %4
  %shl18.i = select i1 %cmp15.i, i32 32, i32 0
  %cmp20.i = fcmp ogt float %3, %4
  %shl22.i = select i1 %cmp20.i, i32 64, i32 0
  %cmp.i239 = fcmp olt float %mul, %mul7
  %conv.i240 = zext i1 %cmp.i239 to i32
  %cmp1.i241 = fcmp ole float %mul, %mul7
  %shl.i242 = select i1 %cmp1.i241, i32 2, i32 0
  %cmp3.i244 = fcmp oeq float %mul, %mul7
  %shl5.i245 = select i1 %cmp3.i244, i32 4, i32 0
  %cmp7.i247 = fcmp une float %mul, %mul7
  %shl9.i248 = select i1 %cmp7.i247, i32 8, i32 0
  %shl13.i250 = select i1 %cmp.i239, i32 0, i32 16
  %cmp15.i252 = fcmp ult float %mul, %mul7
  %shl18.i253 = select i1 %cmp15.i252, i32 32, i32 0
  %cmp20.i255 = fcmp ogt float %mul, %mul7
  %shl22.i256 = select i1 %cmp20.i255, i32 64, i32 0
  %or19.i254 = or disjoint i32 %shl.i242, %conv.i240
  %or14.i251 = or disjoint i32 %or19.i254, %shl5.i245
  %or10.i249 = or disjoint i32 %or14.i251, %shl9.i248
  %or6.i246 = or disjoint i32 %or10.i249, %shl13.i250
  %or.i243 = or disjoint i32 %or6.i246, %shl18.i253
  %or23.i257 = or disjoint i32 %or.i243, %shl22.i256
  %shl13 = shl nuw nsw i32 %or23.i257, 16
  %or19.i = select i1 %cmp.i, i32 14337, i32 14336
  %or23.i = or disjoint i32 %or19.i, %shl.i
  %or14.i = or disjoint i32 %or23.i, %shl5.i
  %or6.i = or disjoint i32 %or14.i, %shl9.i
  %or10.i = or disjoint i32 %or6.i, %shl13.i
  %or.i = or disjoint i32 %or10.i, %shl18.i
  %or = or disjoint i32 %or.i, %shl22.i
  %or14 = add nuw nsw i32 %or, %shl13
  store i32 %or14, ptr %add.ptr, align 4, !tbaa !9
  %add16 = fadd float %mul, %mul7
  %5 = bitcast float %add16 to i32
  %mul18 = fmul nnan float %mul, %mul7
  %6 = bitcast float %mul18 to i32
  %sub = fadd float %mul, -3.500000e+00
  %7 = bitcast float %sub to i32
  %xor = xor i32 %6, %7
  %xor21 = xor i32 %xor, %5
  %arrayidx22 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 4
  store i32 %xor21, ptr %arrayidx22, align 4, !tbaa !9
  %div = fdiv float %mul, %mul7
  %arrayidx24 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 8
  store float %div, ptr %arrayidx24, align 4, !tbaa !9
  %8 = tail call noundef float @llvm.fma.f32(float %mul, float %mul7, float 1.000000e+00)
  %9 = bitcast float %8 to i32
  %10 = tail call noundef float @llvm.fabs.f32(float %mul)
  %11 = tail call noundef float @llvm.nvvm.sqrt.rn.f(float %10)
  %12 = bitcast float %11 to i32
  %xor30 = xor i32 %12, %9
  %arrayidx31 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 12
  store i32 %xor30, ptr %arrayidx31, align 4, !tbaa !9
  %13 = tail call nsz noundef float @llvm.maxnum.f32(float %mul, float %mul7)
  %14 = bitcast float %13 to i32
  %15 = bitcast float %mul to i32
  %fneg = fneg float %mul7
  %16 = bitcast float %fneg to i32
  %xor36 = xor i32 %16, %15
  %xor38 = xor i32 %xor36, %14
  %arrayidx39 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 16
  store i32 %xor38, ptr %arrayidx39, align 4, !tbaa !9
  %17 = tail call noundef float @llvm.floor.f32(float %mul)
  %18 = bitcast float %17 to i32
  %19 = tail call noundef float @llvm.ceil.f32(float %mul7)
  %20 = bitcast float %19 to i32
  %21 = tail call noundef float @llvm.trunc.f32(float %mul)
  %22 = bitcast float %21 to i32
  %xor44 = xor i32 %22, %18
  %xor47 = xor i32 %xor44, %20
  %arrayidx48 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 20
  store i32 %xor47, ptr %arrayidx48, align 4, !tbaa !9
  %conv49 = fptosi float %mul to i32
  %conv51 = fptoui float %10 to i32
  %mul53 = fmul nnan float %mul7, 1.000000e+03
  %conv54 = fptosi float %mul53 to i64
  %conv55 = trunc i64 %conv54 to i32
  %23 = tail call noundef i32 @llvm.nvvm.f2i.rn(float %mul)
  %xor52 = xor i32 %23, %conv49
  %xor56 = xor i32 %xor52, %conv51
  %xor58 = xor i32 %xor56, %conv55
  %arrayidx59 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 24
  store i32 %xor58, ptr %arrayidx59, align 4, !tbaa !9
  %conv60 = fpext float %mul to double
  %conv61 = fpext float %mul7 to double
  %mul62 = fmul nnan double %conv60, %conv61
  %div63 = fdiv double %conv60, %conv61
  %add64 = fadd double %mul62, %div63
  %mul65 = fmul double %add64, 1.000000e+03
  %conv66 = fptosi double %mul65 to i64
  %conv67 = trunc i64 %conv66 to i32
  %mul68 = fmul nnan double %conv60, 1.100000e+00
  %conv69 = fptrunc double %mul68 to float
  %24 = bitcast float %conv69 to i32
  %xor71 = xor i32 %conv67, %24
  %arrayidx72 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 28
  store i32 %xor71, ptr %arrayidx72, align 4, !tbaa !9
  %conv.i.i = fptrunc float %mul to half
  %25 = bitcast half %conv.i.i to i16
  %conv.i258 = zext i16 %25 to i32
  %conv.i.i259 = fptrunc float %3 to half
  %26 = bitcast half %conv.i.i259 to i16
  %conv.i260 = zext i16 %26 to i32
  %shl78 = shl nuw i32 %conv.i260, 16
  %or79 = or disjoint i32 %shl78, %conv.i258
  %arrayidx80 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 32
  store i32 %or79, ptr %arrayidx80, align 4, !tbaa !9
  %conv.i.i261 = fptrunc float %mul to bfloat
  %27 = bitcast bfloat %conv.i.i261 to i16
  %conv.i262 = zext i16 %27 to i32
  %conv.i.i263 = fptrunc float %mul7 to bfloat
  %28 = bitcast bfloat %conv.i.i263 to i16
  %conv.i264 = zext i16 %28 to i32
  %shl87 = shl nuw i32 %conv.i264, 16
  %or88 = or disjoint i32 %shl87, %conv.i262
  %arrayidx89 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 36
  store i32 %or88, ptr %arrayidx89, align 4, !tbaa !9
  %29 = tail call i32 asm "cvt.rn.f16x2.f32 $0, $1, $2;", "=r,f,f"(float %mul7, float %mul) #6, !srcloc !10
  %both.sroa.0.0.extract.trunc.i = trunc i32 %29 to i16
  %both.sroa.4.0.extract.shift.i = lshr i32 %29, 16
  %both.sroa.4.0.extract.trunc.i = trunc nuw i32 %both.sroa.4.0.extract.shift.i to i16
  %30 = bitcast i16 %both.sroa.0.0.extract.trunc.i to half
  %31 = bitcast i16 %both.sroa.4.0.extract.trunc.i to half
  %arrayidx91 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 40
  store i16 %both.sroa.0.0.extract.trunc.i, ptr %arrayidx91, align 4, !tbaa !9
  %arrayidx91.sroa_idx = getelementptr inbounds nuw i8, ptr %add.ptr, i64 42
  store i16 %both.sroa.4.0.extract.trunc.i, ptr %arrayidx91.sroa_idx, align 2, !tbaa !9
  %conv.i265 = fpext half %30 to float
  %conv.i266 = fpext half %31 to float
  %32 = bitcast float %conv.i265 to i32
  %33 = bitcast float %conv.i266 to i32
  %xor98 = xor i32 %33, %32
  %arrayidx99 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 44
  store i32 %xor98, ptr %arrayidx99, align 4, !tbaa !9
  %34 = tail call i32 asm "cvt.rn.bf16x2.f32 $0, $1, $2;", "=r,f,f"(float %mul, float %mul7) #6, !srcloc !11
  %both.sroa.0.0.extract.trunc.i207 = trunc i32 %34 to i16
  %both.sroa.4.0.extract.shift.i208 = lshr i32 %34, 16
  %both.sroa.4.0.extract.trunc.i209 = trunc nuw i32 %both.sroa.4.0.extract.shift.i208 to i16
  %35 = bitcast i16 %both.sroa.4.0.extract.trunc.i209 to bfloat
  %arrayidx101 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 48
  store i16 %both.sroa.0.0.extract.trunc.i207, ptr %arrayidx101, align 4, !tbaa !9
  %arrayidx101.sroa_idx = getelementptr inbounds nuw i8, ptr %add.ptr, i64 50
  store i16 %both.sroa.4.0.extract.trunc.i209, ptr %arrayidx101.sroa_idx, align 2, !tbaa !9
  %conv.i268 = fpext bfloat %35 to float
  %36 = bitcast float %conv.i268 to i32
  %conv.i.i269 = fptrunc float %mul7 to half
  %conv.i = fpext half %conv.i.i269 to float
  %37 = bitcast float %conv.i to i32
  %xor110 = xor i32 %36, %37
  %arrayidx111 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 52
  store i32 %xor110, ptr %arrayidx111, align 4, !tbaa !9
  %conv112 = uitofp i32 %1 to float
  %38 = bitcast float %conv112 to i32
  %conv114 = trunc i32 %2 to i8
  %conv115 = uitofp i8 %conv114 to float
  %39 = bitcast float %conv115 to i32
  %conv118 = trunc i32 %1 to i16
  %conv119 = sitofp i16 %conv118 to float
  %40 = bitcast float %conv119 to i32
  %xor117 = xor i32 %40, %38
  %xor121 = xor i32 %xor117, %39
  %arrayidx122 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 56
  store i32 %xor121, ptr %arrayidx122, align 4, !tbaa !9
  %cmp = fcmp uno float %3, 0.000000e+00
  %41 = select i1 %cmp.i239, i32 1069547520, i32 -8388608
  %42 = select i1 %cmp, i32 0, i32 %41
  %arrayidx126 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 60
  store i32 %42, ptr %arrayidx126, align 4, !tbaa !9
  ret void
}

; Function Attrs: mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef range(i32 0, 1024) i32 @llvm.nvvm.read.ptx.sreg.tid.x() #3

; Function Attrs: mustprogress nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare float @llvm.fma.f32(float, float, float) #4

; Function Attrs: mustprogress nocallback nocreateundeforpoison nofree nosync nounwind willreturn memory(none)
declare float @llvm.nvvm.sqrt.rn.f(float) #5

; Function Attrs: mustprogress nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare float @llvm.fabs.f32(float) #4

; Function Attrs: mustprogress nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare float @llvm.maxnum.f32(float, float) #4

; Function Attrs: mustprogress nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare float @llvm.floor.f32(float) #4

; Function Attrs: mustprogress nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare float @llvm.ceil.f32(float) #4

; Function Attrs: mustprogress nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare float @llvm.trunc.f32(float) #4

; Function Attrs: mustprogress nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i32 @llvm.nvvm.f2i.rn(float) #4

attributes #0 = { mustprogress nofree norecurse nosync nounwind willreturn memory(none) "no-trapping-math"="true" "stack-protector-buffer-size"="8" "target-cpu"="sm_90a" "target-features"="+ptx87,+sm_90a" "uniform-work-group-size" }
attributes #1 = { mustprogress nofree norecurse nosync nounwind willreturn memory(argmem: read) "no-trapping-math"="true" "stack-protector-buffer-size"="8" "target-cpu"="sm_90a" "target-features"="+ptx87,+sm_90a" "uniform-work-group-size" }
attributes #2 = { convergent mustprogress noinline norecurse nounwind memory(argmem: readwrite) "no-trapping-math"="true" "stack-protector-buffer-size"="8" "target-cpu"="sm_90a" "target-features"="+ptx87,+sm_90a" "uniform-work-group-size" }
attributes #3 = { mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none) }
attributes #4 = { mustprogress nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none) }
attributes #5 = { mustprogress nocallback nocreateundeforpoison nofree nosync nounwind willreturn memory(none) }
attributes #6 = { convergent nounwind memory(none) }

!llvm.module.flags = !{!0}
!llvm.ident = !{!1}
!llvm.errno.tbaa = !{!2}

!0 = !{i32 4, !"nvvm-reflect-ftz", i32 0}
!1 = !{!"clang version 23.1.0 (https://github.com/emscripten-forge/recipes 45d36c0f0278f80f0dc674dd1dc55770c59c0682)"}
!2 = !{!3, !4, i64 0}
!3 = !{!"__libc_errno", !4, i64 0}
!4 = !{!"int", !5, i64 0}
!5 = !{!"omnipotent char", !6, i64 0}
!6 = !{!"Simple C++ TBAA"}
!7 = !{!8, !8, i64 0}
!8 = !{!"short", !5, i64 0}
!9 = !{!4, !4, i64 0}
!10 = !{i64 95632}
!11 = !{i64 94132}
